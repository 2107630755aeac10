output "name" {
  value = "main"
}

output "bits" {
  value = 4096
}
