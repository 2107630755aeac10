variable "in" {
  type = string
}

output "out" {
  value = "<${var.in}>"
}
