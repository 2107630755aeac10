data "terraform_remote_state" "team" {
  backend  = "local"
  for_each = 2

  config = {
    path = "${each.key}.tfstate"
  }
}

output "first" {
  value = data.terraform_remote_state.team["a"].outputs
}
