variable "release" {
  type        = string
  description = "Folder with the files of a release"
}

variable "code_bucket" {
  type        = string
  description = "Bucket for the package, in the region of the stack"
}

variable "buckets" {
  type        = list(string)
  description = "Names of the audited buckets"
  validation {
    condition     = length(var.buckets) > 0
    error_message = "Name at least one bucket."
  }
}

variable "level" {
  type        = string
  default     = "metadata"
  description = "What is read of each object: exposure, metadata or fixity"
  validation {
    condition     = contains(["exposure", "metadata", "fixity"], var.level)
    error_message = "Give exposure, metadata or fixity."
  }
}

variable "architecture" {
  type        = string
  default     = "arm64"
  description = "Of the functions: arm64 or x86_64"
  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "Give arm64 or x86_64."
  }
}

variable "parameters" {
  type        = map(string)
  default     = {}
  description = "Further parameters of the template, such as AlertAddress"
  validation {
    condition     = length(setintersection(keys(var.parameters), ["Buckets", "CodeBucket", "CodeKey"])) == 0
    error_message = "Buckets, CodeBucket and CodeKey have variables of their own."
  }
}
