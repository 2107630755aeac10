variable "name" {
  type = string
}

output "label" {
  value = "child-${var.nam}"
}
