data "terraform_remote_state" "dns" {
  back = "local"
}

data "terraform_remote_state" "net" {
  backend = "local"
}
