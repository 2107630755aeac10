variable "name" {
  type = string
}

variable "name" {
  default = "web"
}
