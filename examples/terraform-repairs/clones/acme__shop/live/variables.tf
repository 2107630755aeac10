variable "host" {
  type    = string
  default = "shop.example"
}
