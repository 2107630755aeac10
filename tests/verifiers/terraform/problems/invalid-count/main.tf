module "node" {
  source = "./node"
  count  = "three"
  name   = "n-${count.index}"
}

output "names" {
  value = module.node.*.name
}
