variable "name" {
  default = "web"
}

output "upper" {
  value = uppercase(var.name)
}

output "lower" {
  value = lower(var.name)
}
