variable "retries" {
  type        = integer
  description = "how often"
}

output "retries" {
  value = var.retries
}
