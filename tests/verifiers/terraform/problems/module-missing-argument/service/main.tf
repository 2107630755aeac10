variable "name" {
  type = string
}

variable "port" {
  type = number
}

output "address" {
  value = "${var.name}:${var.port}"
}
