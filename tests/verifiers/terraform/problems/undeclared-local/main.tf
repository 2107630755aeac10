locals {
  names = ["a", "b"]
  first = local.names[0]
}
