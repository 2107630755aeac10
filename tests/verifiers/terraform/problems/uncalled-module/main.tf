module "child" {
  source = "./child"
  name   = "x"
}

output "name" {
  value = "x"
}
