locals {
  port  = tonumber("http")
  ports = [local.port, 443]
}

output "ports" {
  value = local.ports
}
