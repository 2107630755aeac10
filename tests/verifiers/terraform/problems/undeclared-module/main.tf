module "network" {
  source = "./network"
  cidr   = "10.0.0.0/16"
}

output "subnets" {
  description = "first and second half"
  value       = module.networks.halves
}
