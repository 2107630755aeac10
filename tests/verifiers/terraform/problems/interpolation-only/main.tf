variable "name" {
  default = "web"
}

output "name" {
  value = "${var.name}"
}

output "label" {
  value = "${var.name}"
}
