module "web" {
  source = "./service"
  port   = 80
}

output "address" {
  value = module.web.address
}
