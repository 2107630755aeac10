variable "region" {
  type = string
}

locals {
  zone =
  name = "web-${var.region}"
}

output "name" {
  value = local.name
}
