// Package gogcl is the root of a module for collective communication. It declares nothing. Programs import the packages
// below it:
//
//   - [gogcl.dev/gcl]: all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather and scatter
//   - [gogcl.dev/ir], [gogcl.dev/ir/collective], [gogcl.dev/remote]: programs of graphs with gradients, and tensors
//     that outlive the process
//   - [gogcl.dev/rts]: training with variables and optimizer states split over replicas
//   - [gogcl.dev/popops], [gogcl.dev/ir/slice]: look-ups in tables and updates of rows
//   - [gogcl.dev/commgroup], [gogcl.dev/topology]: which replicas talk, and where they sit
//   - [gogcl.dev/methods], [gogcl.dev/methods/schedule], [gogcl.dev/methods/cost]: how replicas talk, as data that can
//     be proved, drawn and priced; [gogcl.dev/methods/schedule/msccl]: the same as XML of msccl-tools
//   - [gogcl.dev/transport]: what connects replicas, which others may implement
//
// Four replicas, each a goroutine, add their ranks up:
//
//	err := gcl.Run(ctx, 4, func(ctx context.Context, c *gcl.Comm) error {
//		sum, err := gcl.AllReduce(ctx, c, []float32{float32(c.Rank())}, gcl.Add)
//		fmt.Println(c.Rank(), sum)
//		return err
//	})
//
// README.md has a whole program and says how to import the module. docs/from-nccl.md and its like have the names of
// NCCL, MPI, torch.distributed, PopXL and GCL beside those here. docs/design/architecture.md lists all packages.
package gogcl
