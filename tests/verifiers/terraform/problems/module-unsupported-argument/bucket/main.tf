variable "name" {
  type = string
}

variable "private" {
  type    = bool
  default = true
}

output "url" {
  value = "s3://${var.name}?private=${var.private}"
}
