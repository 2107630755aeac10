output "ports" {
  value = [for port in var.ports : port + 1]
}
