locals {
  tier = "gold"
}

output "tier" {
  value       = tier
  description = "the tier"
}
