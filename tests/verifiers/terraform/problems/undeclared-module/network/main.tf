variable "cidr" {
  type = string
}

output "halves" {
  value = [cidrsubnet(var.cidr, 1, 0), cidrsubnet(var.cidr, 1, 1)]
}
