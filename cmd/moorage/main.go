// Command moorage runs an Apache Iceberg REST catalog, and manages its store.
//
// Only this package wires the parts together, reads the environment, and chooses the clock and the
// source of randomness. Package internal/cli has the commands and their settings. Each function
// here that takes a cli.Config carries out one command.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"moorage/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	ctx, hangups := heedHangups(ctx)
	os.Exit(run(ctx, os.Args[1:], cli.Environment{
		Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, OnHangup: hangups.do,
	}))
}

// run executes one command line and returns the exit code of the process.
func run(ctx context.Context, args []string, env cli.Environment) int {
	return cli.Run(ctx, args, env, cli.Actions{
		Serve: serve, Migrate: migrate, Check: checkStore, Backup: backup,
		RecoverList: recoverEach, RecoverRetry: recoverRetry, RecoverAbort: recoverAbort, RecoverForget: recoverForget,
		SecretsInit: initSecrets, SecretsDraw: drawSecretsKey, SecretsRotate: rotateSecrets,
		WarehouseCreate: createWarehouse, WarehouseList: listWarehouses, WarehouseShow: showWarehouse,
		WarehouseChange: changeWarehouse, WarehouseDrop: dropWarehouse, WarehouseValidate: validateWarehouse,
		WarehouseTombstones: listTombstones, WarehouseClear: clearTombstone,
		AccessEnable: enableAccess, AccessExport: exportAccess,
		KeyCreate: createKey, KeyList: listKeys, KeyRotate: rotateKey, KeyWithdraw: withdrawKey,
		RoleList: listRoles, RoleCreate: createRole, RoleDrop: dropRole, RoleAdd: addMembers, RoleRemove: removeMembers,
		Grant: grant, Revoke: revoke, Grants: showGrants, Owner: handOver, Explain: explain,
		MaintainPlan: maintainPlan, MaintainRun: maintainRun, MaintainStatus: maintainStatus,
		MaintainJobs: maintainJobs, MaintainFiles: maintainFiles, MaintainJob: maintainJob,
		MaintainOrphans: maintainOrphans, MaintainWork: maintainWork,
		MaintainPolicy: maintainPolicy, MaintainBlockers: maintainBlockers,
		Version: printVersion, LeaseRun: leaseRun,
	})
}

func printVersion(_ context.Context, _ cli.Config, env cli.Environment) error {
	_, err := fmt.Fprintln(env.Stdout, "moorage "+version())
	return err
}
