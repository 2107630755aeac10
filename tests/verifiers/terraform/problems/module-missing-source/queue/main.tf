output "name" {
  value = "jobs"
}
