module github.com/visionoperator/vision-operator/hack/cluster

go 1.26.0
