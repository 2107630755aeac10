output "url" {
  value = "https://${var.hostname}/"
}
