variable "name" {
  type = string
}

output "label" {
  value = format_label(var.name)
}
