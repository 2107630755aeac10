locals {
  env = "dev"
}

locals {
  env  = "prod"
  tier = "gold"
}

output "tier" {
  value = "${local.env}-${local.tier}"
}
