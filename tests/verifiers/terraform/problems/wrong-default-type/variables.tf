variable "ports" {
  type    = list(number)
  default = "80"
}
