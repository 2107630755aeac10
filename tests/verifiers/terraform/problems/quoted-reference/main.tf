locals {
  ready = true
  later = local.missing
}

data "terraform_remote_state" "base" {
  backend    = "local"
  depends_on = ["local.ready"]
}
