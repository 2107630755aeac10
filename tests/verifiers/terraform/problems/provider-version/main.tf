provider "terraform" {
  version = "~> 1.0"
}

output "ok" {
  value = true
}
