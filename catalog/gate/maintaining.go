package gate

import "moorage/access"

// The verbs for managing the maintenance of tables.
const (
	LoadMaintenancePolicy    Verb = "load-maintenance-policy"
	PutMaintenancePolicy     Verb = "put-maintenance-policy"
	DeleteMaintenancePolicy  Verb = "delete-maintenance-policy"
	PreviewMaintenancePolicy Verb = "preview-maintenance-policy"
	LoadMaintenance          Verb = "load-maintenance"
	ListMaintenance          Verb = "list-maintenance"
	PauseMaintenance         Verb = "pause-maintenance"
	ResumeMaintenance        Verb = "resume-maintenance"
	RescanMaintenance        Verb = "rescan-maintenance"
	RunMaintenance           Verb = "run-maintenance"
	PlanMaintenance          Verb = "plan-maintenance"
	AdoptOrphans             Verb = "adopt-orphans"
	AdoptFiles               Verb = "adopt-files"
	ChangeMaintenanceJob     Verb = "change-maintenance-job"
)

// maintaining returns the rows of the verbs for maintenance. The Guard admits every verb on a
// scope, which is the server, a warehouse, a namespace or a table. catalog.Scopes finds the scope
// and checks the caller's privileges.
func maintaining() []Row {
	reads := func(verb Verb, operations ...string) Row {
		return Row{Verb: verb, On: access.Server, Reads: true, AskedLater: true, Management: operations}
	}
	changes := func(verb Verb, operations ...string) Row {
		return Row{Verb: verb, On: access.Server, Keyed: true, AskedLater: true, Management: operations}
	}
	atGate := func(row Row) Row {
		row.AskedLater = false
		return row
	}
	return []Row{
		reads(LoadMaintenancePolicy, "loadMaintenancePolicy"),
		changes(PutMaintenancePolicy, "putMaintenancePolicy"),
		changes(DeleteMaintenancePolicy, "deleteMaintenancePolicy"),
		reads(PreviewMaintenancePolicy, "previewMaintenancePolicy"),
		reads(LoadMaintenance, "loadMaintenance"),
		atGate(reads(ListMaintenance, "listMaintenanceJobs", "listMaintenanceJobFiles", "listMaintenancePolicies")),
		changes(PauseMaintenance, "pauseMaintenance"),
		changes(ResumeMaintenance, "resumeMaintenance"),
		changes(RescanMaintenance, "rescanMaintenance"),
		changes(RunMaintenance, "runMaintenance"),
		changes(AdoptFiles, "runMaintenance"),
		reads(PlanMaintenance, "planMaintenance"),
		atGate(changes(AdoptOrphans, "adoptOrphans")),
		atGate(changes(ChangeMaintenanceJob,
			"cancelMaintenanceJob", "retryMaintenanceJob", "quarantineMaintenanceJob", "pauseMaintenanceJob",
			"resumeMaintenanceJob")),
	}
}

// maintainingAsks returns the privilege checks of the verbs for maintenance. A caller that may
// grant privileges on an object may also set the object's maintenance policy and preview the
// effect. NeedsOfServer returns the privileges for the server as a whole.
func maintainingAsks() map[Verb][]Ask {
	maintain := []Ask{{Of: OfObject, For: access.Maintain}}
	policies := append([]Ask{{OfObject, access.Manage, Instead}}, maintain...)
	describe := []Ask{{Of: OfObject, For: access.Describe}}
	operate := []Ask{{Of: OfServer, For: access.Operate}}
	return map[Verb][]Ask{
		LoadMaintenancePolicy:    describe,
		PutMaintenancePolicy:     policies,
		DeleteMaintenancePolicy:  policies,
		PreviewMaintenancePolicy: policies,
		LoadMaintenance:          describe,
		ListMaintenance:          operate,
		PauseMaintenance:         maintain,
		ResumeMaintenance:        maintain,
		RescanMaintenance:        maintain,
		RunMaintenance:           maintain,
		PlanMaintenance:          policies,
		AdoptOrphans:             operate,
		AdoptFiles:               {{Of: OfObject, For: access.Purge}},
		ChangeMaintenanceJob:     operate,
	}
}

// NeedsOfServer returns the privileges that v, a verb for maintenance, requires on the server as a
// whole. They include access.Operate instead of access.Maintain, which is never granted on the
// server.
func (v Verb) NeedsOfServer() access.Privileges {
	asked := v.Needs(OfObject, Always)
	if asked.Has(access.Maintain) {
		return access.Operate
	}
	return asked
}
