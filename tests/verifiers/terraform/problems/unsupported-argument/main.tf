output "password" {
  value  = "secret"
  secret = true
}
