data "terraform_remote_state" "dns" {
  backend = "locale"
  config = {
    path = "dns.tfstate"
  }
}

output "zone" {
  value = data.terraform_remote_state.dns.outputs
}
