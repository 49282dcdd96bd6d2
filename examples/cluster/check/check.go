// Package check finds faults in the manifest and the Dockerfile of examples/cluster: fields that the API does not have,
// and places that must say the same and do not. The manifest is read by the types of Kubernetes, the Dockerfile by the
// parser of BuildKit.
package check

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// A report collects what is wrong.
type report []error

// want adds an error unless ok.
func (r *report) want(ok bool, format string, arguments ...any) {
	if !ok {
		*r = append(*r, fmt.Errorf(format, arguments...))
	}
}

// Manifest checks a file of one headless Service and one indexed Job, whose pods are the replicas.
func Manifest(text []byte) error {
	var service core.Service
	var job batch.Job
	var r report
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return err
		}
		var err error
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Service":
			r.want(service.Name == "", "two Services")
			err = decode(document, &service)
		case "batch/v1 Job":
			r.want(job.Name == "", "two Jobs")
			err = decode(document, &job)
		default:
			err = errors.New("want v1 Service or batch/v1 Job")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind.APIVersion, kind.Kind, err)
		}
	}
	if service.Name == "" || job.Name == "" || len(job.Spec.Template.Spec.Containers) != 1 {
		return errors.Join(append(r, errors.New("want a Service and a Job with one container"))...)
	}
	r.network(&service, &job)
	if job.Spec.Template.Spec.RestartPolicy == core.RestartPolicyOnFailure {
		r.surviving(&job.Spec, service.Name)
	} else {
		r.ending(&job.Spec)
	}
	r.job(&job.Spec)
	r.secret(&job.Spec.Template, text)
	for _, c := range slices.Concat(job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers) {
		r.resources(c.Resources)
	}
	return errors.Join(r...)
}

// decode reads a document as the API server does: YAML becomes JSON without regard to the types, and JSON that does not
// fit them is an error, down to the case of names.
func decode(document []byte, object any) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(text, object)
	return errors.Join(append(strict, err)...)
}

// network checks that the Service gives the pods the names by which they meet.
func (r *report) network(service *core.Service, job *batch.Job) {
	pod := &job.Spec.Template
	r.want(service.Spec.ClusterIP == core.ClusterIPNone, "the Service is not headless: clusterIP is %q",
		service.Spec.ClusterIP)
	r.want(service.Spec.PublishNotReadyAddresses, "publishNotReadyAddresses is false")
	r.want(service.Namespace == job.Namespace, "the Service and the Job are in two namespaces")
	r.want(pod.Spec.Subdomain == service.Name, "subdomain %q is not the Service %q", pod.Spec.Subdomain, service.Name)
	r.want(len(service.Spec.Selector) > 0 &&
		labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)),
		"the Service selects %v, and pods have %v", service.Spec.Selector, pod.Labels)
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		selector, err := meta.LabelSelectorAsSelector(spread.LabelSelector)
		r.want(err == nil && selector.Matches(labels.Set(pod.Labels)), "the spread is over other pods: %v, error %v",
			selector, err)
	}
	host, text, err := net.SplitHostPort(value(pod, "GCL_RENDEZVOUS"))
	port, portErr := strconv.ParseInt(text, 10, 32)
	r.want(err == nil && portErr == nil, "GCL_RENDEZVOUS: %v %v", err, portErr)
	want := job.Name + "-0." + service.Name
	r.want(host == want, "GCL_RENDEZVOUS has the host %q, want %q", host, want)
	r.want(len(service.Spec.Ports) == 1 && int64(service.Spec.Ports[0].Port) == port,
		"the Service has ports %v, and GCL_RENDEZVOUS %d", service.Spec.Ports, port)
	ports := pod.Spec.Containers[0].Ports
	r.want(len(ports) == 1 && int64(ports[0].ContainerPort) == port, "the container has ports %v, want %d", ports,
		port)
}

// job checks that the pods are the replicas of one job.
func (r *report) job(spec *batch.JobSpec) {
	r.want(spec.CompletionMode != nil && *spec.CompletionMode == batch.IndexedCompletion, "the Job is not Indexed")
	size, err := strconv.ParseInt(value(&spec.Template, "GCL_SIZE"), 10, 32)
	r.want(err == nil, "GCL_SIZE: %v", err)
	r.want(spec.Completions != nil && int64(*spec.Completions) == size, "completions are not GCL_SIZE, which is %d",
		size)
	r.want(spec.Parallelism != nil && int64(*spec.Parallelism) == size, "parallelism is not GCL_SIZE, which is %d",
		size)
}

// ending checks that the Job ends with the first pod that fails.
func (r *report) ending(spec *batch.JobSpec) {
	r.want(spec.BackoffLimit != nil && *spec.BackoffLimit == 0, "backoffLimit is not 0")
	pod := &spec.Template.Spec
	r.want(pod.RestartPolicy == core.RestartPolicyNever, "restartPolicy %s: a podFailurePolicy wants Never",
		pod.RestartPolicy)
	policy := spec.PodFailurePolicy
	if policy == nil {
		r.want(false, "no podFailurePolicy")
		return
	}
	disruption, exit := false, false
	for i, rule := range policy.Rules {
		r.want(rule.Action == batch.PodFailurePolicyActionFailJob, "rule %d: action %s, want FailJob", i, rule.Action)
		for _, c := range rule.OnPodConditions {
			disruption = disruption || c.Type == core.DisruptionTarget
		}
		if codes := rule.OnExitCodes; codes != nil {
			exit = codes.Operator == batch.PodFailurePolicyOnExitCodesOpNotIn &&
				slices.Equal(codes.Values, []int32{0}) &&
				(codes.ContainerName == nil || *codes.ContainerName == pod.Containers[0].Name)
		}
	}
	r.want(disruption, "no rule about disruptions")
	r.want(exit, "no rule about every exit code of the container but 0")
}

// surviving checks that the container of a pod comes back as a newcomer when it has failed: a shell that an init
// container has put into an emptyDir finds a file there.
func (r *report) surviving(spec *batch.JobSpec, service string) {
	r.want(spec.BackoffLimit != nil && *spec.BackoffLimit > 0, "backoffLimit is 0: no container comes back")
	r.want(spec.PodFailurePolicy == nil, "a podFailurePolicy wants restartPolicy Never")
	r.want(spec.SuccessPolicy != nil && len(spec.SuccessPolicy.Rules) == 1 &&
		spec.SuccessPolicy.Rules[0].SucceededCount != nil && *spec.SuccessPolicy.Rules[0].SucceededCount == 1,
		"no successPolicy of one pod: a container that comes too late fails the Job")
	pod := &spec.Template.Spec
	c := &pod.Containers[0]
	if len(pod.InitContainers) != 1 || len(c.Command) != 5 || len(pod.InitContainers[0].Command) != 3 {
		r.want(false, "want an init container that copies a shell, and a container with a command of sh -c")
		return
	}
	init, shell := &pod.InitContainers[0], c.Command[0]
	dir := path.Dir(shell)
	r.want(init.Command[2] == shell, "the init container copies to %s, and the shell is %s", init.Command[2], shell)
	for _, of := range []*core.Container{init, c} {
		mount := slices.IndexFunc(of.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == dir })
		r.want(mount >= 0 && slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool {
			return v.Name == of.VolumeMounts[mount].Name && v.EmptyDir != nil
		}), "container %s has no emptyDir at %s", of.Name, dir)
		user := of.SecurityContext
		r.want(user != nil && user.ReadOnlyRootFilesystem != nil && *user.ReadOnlyRootFilesystem,
			"the root of container %s is not read-only", of.Name)
	}
	_, port, _ := net.SplitHostPort(value(&spec.Template, "GCL_RENDEZVOUS"))
	script := c.Command[3]
	for _, want := range []string{"[ -e " + dir + "/started ]", ": >" + dir + "/started\n", "exec /program \"$@\"",
		"export GCL_NEWCOMER=1 GCL_RENDEZVOUS=" + net.JoinHostPort(service, port) + "\n"} {
		r.want(strings.Contains(script, want), "the command has no %q", want)
	}
	r.want(slices.Contains(c.Args, "-survive"), "the program has no -survive")
}

// secret checks that the command of the manifest's comment makes a Secret, and that a file of it is where
// GCL_SECRET_FILE has it.
func (r *report) secret(template *core.PodTemplateSpec, manifest []byte) {
	pod := &template.Spec
	c := &pod.Containers[0]
	r.want(value(template, "GCL_SECRET") == "", "GCL_SECRET stands in the manifest")
	dir, key := path.Split(value(template, "GCL_SECRET_FILE"))
	mount := slices.IndexFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == path.Clean(dir) })
	if mount < 0 {
		r.want(false, "nothing is mounted at %q, where GCL_SECRET_FILE is", dir)
		return
	}
	name := c.VolumeMounts[mount].Name
	volume := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == name && v.Secret != nil })
	if volume < 0 {
		r.want(false, "volume %q is no Secret", name)
		return
	}
	s := pod.Volumes[volume].Secret
	command := fmt.Sprintf("\tkubectl create secret generic %s --from-literal=%s=", s.SecretName, key)
	r.want(bytes.Contains(manifest, []byte(command)), "no command of the comment begins with %q", command)
	r.want(s.DefaultMode != nil && *s.DefaultMode&0o007 == 0, "others may read the secret")
	readable := pod.SecurityContext != nil && pod.SecurityContext.FSGroup != nil
	r.want(readable, "no fsGroup: the user of the container cannot read the secret")
}

// resources checks that a pod has whole processors of its own.
func (r *report) resources(of core.ResourceRequirements) {
	for _, name := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory} {
		request, limit := of.Requests[name], of.Limits[name]
		r.want(request.Sign() > 0 && request.Cmp(limit) == 0, "%s: request %v and limit %v, want the same", name,
			&request, &limit)
	}
	cpu := of.Requests[core.ResourceCPU]
	r.want(cpu.MilliValue()%1000 == 0, "cpu: %v is no whole number", &cpu)
}

// value is the value of a variable of the pod's container.
func value(pod *core.PodTemplateSpec, name string) string {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// Dockerfile checks a Dockerfile whose last stage is a static binary of a package of the module at root, and nothing
// else. release is the release of Go that the module wants, as in 1.26.
func Dockerfile(text []byte, root fs.FS, release string) error {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return err
	}
	var r report
	r.want(len(parsed.Warnings) == 0, "warnings: %v", parsed.Warnings)
	if len(stages) != 2 {
		return fmt.Errorf("%d stages, want 2", len(stages))
	}
	build, last := stages[0], stages[1]
	tag, isGo := strings.CutPrefix(build.BaseName, "golang:")
	r.want(isGo && strings.HasPrefix(tag, release+".") && strings.Contains(tag, "-"),
		"the base is %s, want golang:%s.PATCH-SYSTEM", build.BaseName, release)
	r.want(last.BaseName == "scratch", "the last stage is on %s, not on scratch", last.BaseName)
	r.build(build, root)
	r.last(last, build.Name)
	return errors.Join(r...)
}

// build checks the stage that builds the program.
func (r *report) build(stage instructions.Stage, root fs.FS) {
	program, built := "", false
	for _, command := range stage.Commands {
		switch command := command.(type) {
		case *instructions.ArgCommand:
			for _, a := range command.Args {
				if a.Key == "PROGRAM" && a.Value != nil {
					program = *a.Value
				}
			}
		case *instructions.RunCommand:
			line := strings.Join(command.CmdLine, " ")
			if !strings.Contains(line, "go build ") {
				continue
			}
			built = true
			for _, want := range []string{"CGO_ENABLED=0 ", " -trimpath ", " -o /program ", " $PROGRAM"} {
				r.want(strings.Contains(line, want), "the build has no %q: %s", want, line)
			}
		}
	}
	r.want(built, "nothing is built")
	files, err := fs.Glob(root, path.Join(path.Clean(program), "*.go"))
	r.want(err == nil && strings.HasPrefix(program, "./"), "PROGRAM is %q, want ./DIRECTORY", program)
	isMain := slices.ContainsFunc(files, func(name string) bool {
		text, err := fs.ReadFile(root, name)
		return err == nil && bytes.Contains(text, []byte("\npackage main\n"))
	})
	r.want(isMain, "%s is no program of this module", program)
}

// last checks the stage that is the image.
func (r *report) last(stage instructions.Stage, build string) {
	copied, user, entry := false, "", []string(nil)
	for _, command := range stage.Commands {
		switch command := command.(type) {
		case *instructions.CopyCommand:
			copied = command.From == build && slices.Equal(command.SourcePaths, []string{"/program"}) &&
				command.DestPath == "/program"
		case *instructions.UserCommand:
			user = command.User
		case *instructions.EntrypointCommand:
			entry = command.CmdLine
			r.want(!command.PrependShell, "the entry point wants a shell, and scratch has none")
		}
	}
	uid, _, _ := strings.Cut(user, ":")
	number, err := strconv.Atoi(uid)
	r.want(err == nil && number > 0, "the user is %q: want a number above 0, which Kubernetes can tell from root", user)
	r.want(copied, "the program is not copied")
	r.want(slices.Equal(entry, []string{"/program"}), "the entry point is %q", entry)
}
