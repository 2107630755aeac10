variable "size" {
  type = number
}

variable "labels" {
  type = list(string)
}
