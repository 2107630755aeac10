module "bucket" {
  source = "./bucket"
  name   = "logs"
  public = false
}

output "bucket" {
  value = module.bucket.url
}
