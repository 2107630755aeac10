data "terraform_remote_state" "base" {
  backend = "local"

  config = {
    path = "base.tfstate"
  }
}

output "vpc" {
  value = data.terraform_remote_state.network.outputs["vpc"]
}
