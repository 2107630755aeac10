module "child" {
  source = "./child"
  name   = "x"
}

output "label" {
  value = module.child.label
}
