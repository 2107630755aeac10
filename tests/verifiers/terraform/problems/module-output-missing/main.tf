module "key" {
  source = "./key"
}

output "key" {
  value = module.key.id
}

output "bits" {
  value = module.key.bits
}
