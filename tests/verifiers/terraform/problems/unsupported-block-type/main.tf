variable "name" {
  default = "web"
}

outputs "name" {
  value = var.name
}
