module "pool" {
  source = "./pool"
  size   = "large"
  labels = ["a"]
}
