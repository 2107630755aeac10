module "left" {
  source = "./half"
  in     = module.right.out
}

module "right" {
  source = "./half"
  in     = module.left.out
}
