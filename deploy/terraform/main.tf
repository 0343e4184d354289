# The functions, roles, schedules, queues and the table of a release, as the stack of its own template: docs/deploy.md,
# "Without Node". `release` is the folder that `make release` writes.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

locals {
  package  = "${var.release}/function-${var.architecture}.zip"
  template = "${var.release}/template-${var.level}-${var.architecture}.json"
}

data "aws_s3_bucket" "code" {
  bucket = var.code_bucket
}

# Another package has another key, so that the stack takes it. The old one stays until then: a failed update returns to it.
resource "aws_s3_object" "package" {
  bucket = var.code_bucket
  key    = "s3-auditor/${filesha256(local.package)}.zip"
  source = local.package
  lifecycle {
    create_before_destroy = true
  }
}

# CloudFormation takes 51,200 bytes of a template that lies in no bucket (CloudFormation quotas): that of fixity has more.
resource "aws_s3_object" "template" {
  bucket = var.code_bucket
  key    = "s3-auditor/${filesha256(local.template)}.json"
  source = local.template
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_cloudformation_stack" "auditor" {
  name         = "s3-auditor-prod"
  template_url = "https://${data.aws_s3_bucket.code.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]
  parameters = merge(var.parameters, {
    Buckets    = join(",", var.buckets)
    CodeBucket = aws_s3_object.package.bucket
    CodeKey    = aws_s3_object.package.key
  })
}
