variable "prefix" {
  default = "dev"
}

variable "name" {
  type    = string
  default = "${var.prefix}-app"
}

output "name" {
  value = var.name
}
