package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
)

// commands returns the action of each command. Most commands are one request to the management API
// of a server, or of the command's own process: a method, a path, a body and a printer. The other
// commands take several requests, run programs, or work without a server.
func commands() map[string]cli.Action {
	const get, put, post, patch, remove = http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch,
		http.MethodDelete
	return map[string]cli.Action{
		"demo":    runDemo,
		"connect": connectEngine,

		"ls":       people(listObjects),
		"tree":     people(tree),
		"changes":  people(changes),
		"history":  people(showHistory),
		"show":     people(show),
		"health":   people(health),
		"top":      people(top),
		"find":     people(findObjects),
		"mk":       people(makeNamespace),
		"mv":       people(renameObject),
		"rm":       people(removeObject),
		"register": people(register),
		"set":      people(setOnObject),
		"unset":    people(unsetOnObject),
		"label":    people(labelObject),
		"tag":      people(setTag),
		"branch":   people(setBranch),
		"diff":     people(diff),
		"rows":     people(showRows),
		"rollback": people(rollback),
		"undrop":   people(undropObject),
		"protect":  people(protectObject),
		"api":      people(callAPI),

		"import rest":    people(importObjects),
		"import sql":     people(importObjects),
		"import files":   people(importObjects),
		"import list":    people(importObjects),
		"import cutover": people(cutOver),
		"export list":    people(exportList),
		"export rest":    people(exportREST),
		"export dir":     people(exportDir),
		"plan":           people(planCode),
		"apply":          people(applyCode),
		"export":         people(exportCode),

		"serve":       serve,
		"migrate":     migrate,
		"healthcheck": checkHealth,
		"version":     printVersion,
		"backup":      waiting("backup", call(post, at("backup"), backupBody, printBackup)),

		"doctor":        diagnose,
		"doctor retry":  retry,
		"doctor abort":  call(post, doctorPath("abort"), nil, printAborted),
		"doctor forget": forget,

		"warehouse create":     call(post, at("warehouses"), newWarehouse, printCreatedWarehouse),
		"warehouse list":       listWarehouses,
		"warehouse show":       call(get, warehousePath(), nil, printWarehouse),
		"warehouse change":     call(patch, warehousePath(), warehouseChange, printWarehouse),
		"warehouse validate":   call(post, warehousePath("validate"), nil, printValidation),
		"warehouse drop":       call(remove, warehousePath(), nil, printDroppedWarehouse),
		"warehouse tombstones": list(warehousePath("tombstones"), printTombstones),
		"warehouse clear":      call(post, warehousePath("tombstones", "clear"), tombstoneBody, printCleared),

		"secrets init":   initSecrets,
		"secrets draw":   drawSecretsKey,
		"secrets rotate": call(post, at("secrets", "rotate"), rotationBody, printRotation),

		"access enable": enableAccess,
		"access export": call(get, at("access", "export"), nil, printExport),
		"key create":    createKey,
		"key list":      listKeys,
		"key rotate":    call(post, keyPath("rotate"), rotatedKeyBody, printKey),
		"key withdraw":  withdrawKey,
		"role list":     list(at("roles"), printRoles),
		"role create":   createRole,
		"role drop":     call(remove, rolePath(), nil, printDroppedRole),
		"role add":      call(patch, rolePath("members"), addedMembers, printRole),
		"role remove":   call(patch, rolePath("members"), removedMembers, printRole),
		"grant":         call(post, at("grants"), grantBody(client.ChangeGrant), printGranted),
		"revoke":        call(post, at("grants"), grantBody(client.ChangeRevoke), printRevoked),
		"grants":        list(grantsPath, printGrants),
		"owner":         call(put, at("owner"), ownerBody, printOwner),
		"explain":       readBy(post, at("access", "explain"), question, printExplanation),

		"maintain status": maintainStatus,
		"maintain set":    maintainSet,
		"maintain run":    maintainRun,
		"maintain pause":  call(post, at("maintenance", "pause"), maintainedObject, printChanged),
		"maintain resume": maintainResume,
		"maintain rescan": call(post, at("maintenance", "rescan"), maintainedObject, printChanged),
		"maintain job":    maintainJob,
		"maintain work":   maintainWork,

		"lease run": leaseRun,
	}
}

// path returns the path and the query parameters of a command's request.
type path func(c cli.Config) (path string, query url.Values)

// at returns a path function for fixed segments, whatever the command's operands are.
func at(segments ...string) path {
	return func(cli.Config) (string, url.Values) { return client.Path(segments...), nil }
}

// call returns a command that sends one request and prints the answer. body returns the body of the
// request; body itself is nil if the request has none.
func call[A any](method string, to path, body func(c cli.Config) (any, error),
	print func(out io.Writer, c cli.Config, answer A) error) cli.Action {
	return sent(client.Request{Method: method}, to, body, print)
}

// waiting wraps run in a command that shows on standard error how long it has run.
func waiting(what string, run cli.Action) cli.Action {
	return func(ctx context.Context, c cli.Config, env cli.Environment) error {
		bar := term.StartProgress(env.Stderr, env.Environ, what, 0)
		defer bar.End()
		env.Stdout = bar.Over(env.Stdout)
		return run(ctx, c, env)
	}
}

// readBy is like call, for a read whose method is not GET.
func readBy[A any](method string, to path, body func(c cli.Config) (any, error),
	print func(out io.Writer, c cli.Config, answer A) error) cli.Action {
	return sent(client.Request{Method: method, Reads: true}, to, body, print)
}

// sent returns a command that sends asked, with the path and the body that its operands require.
func sent[A any](asked client.Request, to path, body func(c cli.Config) (any, error),
	print func(out io.Writer, c cli.Config, answer A) error) cli.Action {
	return func(ctx context.Context, c cli.Config, env cli.Environment) error {
		asked := asked
		asked.Path, asked.Query = to(c)
		if body != nil {
			var err error
			if asked.Body, err = body(c); err != nil {
				return err
			}
		}
		return withServer(ctx, c, env, func(server *client.Client) error {
			var answer A
			if err := server.Do(ctx, asked, &answer); err != nil {
				return err
			}
			return print(env.Stdout, c, answer)
		})
	}
}

// list returns a command that prints all pages of a list.
func list[P interface{ Next() string }](to path, print func(out io.Writer, page P)) cli.Action {
	return func(ctx context.Context, c cli.Config, env cli.Environment) error {
		asked := client.Request{Method: http.MethodGet}
		asked.Path, asked.Query = to(c)
		return withServer(ctx, c, env, func(server *client.Client) error {
			return client.Pages(ctx, server, asked, func(page P) bool {
				print(env.Stdout, page)
				return true
			})
		})
	}
}

// printJSON prints a value as indented JSON.
func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
