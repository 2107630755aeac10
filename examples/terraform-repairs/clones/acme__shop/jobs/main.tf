module "queue" {
  source = "../modules/queue"
  name   = "jobs"
  size   = 3
}

output "queue" {
  value = module.queue.name
}
