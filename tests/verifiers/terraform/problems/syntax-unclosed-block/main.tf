variable "size" {
  type    = number
  default = 3

output "size" {
  value = var.size
}

output "double" {
  value = var.size * 2
}
