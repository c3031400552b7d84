package check

import (
	"context"
	"errors"
	"strings"
	"time"

	"moorage/registry"
	"moorage/storage"
)

// jobGrace is the time after its due time for which a job on a deleted table may still exist. A
// worker should have ended the job in that time.
const jobGrace = time.Hour

// tableKind is one kind of maintenance of one table.
type tableKind struct {
	pointer registry.ID
	kind    string
}

// maintained has the maintenance records that a look has found.
type maintained struct {
	look     *look
	dues     map[tableKind][]registry.Key // records of the due index
	required map[tableKind]registry.Key   // the due records that schedules require
	jobs     []registry.Job
}

func (m *maintained) job(record registry.Record) {
	value, ok := readRecord[registry.Job](m.look, record, registry.StateCollecting, registry.StateWaiting,
		registry.StateDeleting, registry.StateAssigned, registry.StateBlocked)
	if !ok {
		return
	}
	if registry.JobKey(value.Pointer, value.Kind) != record.Key {
		m.look.problem("%s holds the job %s of another table or kind", record.Key, value.ID)
		return
	}
	m.jobs = append(m.jobs, value)
}

func (m *maintained) schedule(record registry.Record) {
	value, ok := readRecord[registry.Schedule](m.look, record, registry.StateNone)
	var pointer registry.ID
	if !ok || !m.pointerOf(record, &pointer) {
		return
	}
	for _, job := range value.Jobs {
		if !job.Due.IsZero() {
			m.required[tableKind{pointer, job.Kind}] = registry.DueKey(pointer, job.Kind, job.Due)
		}
	}
}

// pointerOf parses the id of a pointer from the key of a record.
func (m *maintained) pointerOf(record registry.Record, pointer *registry.ID) bool {
	err := pointer.UnmarshalText([]byte(record.Key.ID))
	if err != nil {
		m.look.unreadable[record.Key] = err
	}
	return err == nil
}

func (m *maintained) due(record registry.Record) {
	if _, ok := readRecord[registry.Due](m.look, record, registry.StateNone); !ok ||
		strings.HasPrefix(record.Key.ID, registry.DueBlockedPrefix()) {
		return
	}
	if strings.HasPrefix(record.Key.ID, registry.WindowPrefix()) {
		// The record is a hint: its pointer may have been restored, or be gone.
		if _, _, err := registry.ParseWindow(record.Key); err != nil {
			m.look.unreadable[record.Key] = err
		}
		return
	}
	if strings.HasPrefix(record.Key.ID, registry.WaitingPrefix()) {
		m.look.waiting[record.Key] = true
		return
	}
	pointer, kind, _, err := registry.ParseDue(record.Key)
	if err != nil {
		m.look.unreadable[record.Key] = err
		return
	}
	on := tableKind{pointer, kind}
	m.dues[on] = append(m.dues[on], record.Key)
}

func (m *maintained) lease(record registry.Record) {
	_, ok := readRecord[registry.Lease](m.look, record, registry.StateNone)
	var pointer registry.ID
	if !ok || !m.pointerOf(record, &pointer) || m.look.hidden(registry.PointerKey(pointer)) {
		return
	}
	if _, ok := m.look.pointers[pointer]; !ok {
		m.look.problem("%s is a lease on a table that is gone", record.Key)
	}
}

// run and rule check that records are readable.
func (m *maintained) run(record registry.Record) {
	readRecord[registry.Run](m.look, record, registry.StateNone)
}

func (m *maintained) rule(record registry.Record) {
	readRecord[registry.MaintenancePolicy](m.look, record, registry.StateNone)
}

// report reports records in the due index without a matching schedule, and schedules without their
// due records. It also reports jobs on tables that are long gone, and jobs whose files are missing.
func (m *maintained) report(ctx context.Context) error {
	for on, keys := range m.dues {
		for _, key := range keys {
			if m.required[on] != key && !m.look.hidden(registry.ScheduleKey(on.pointer)) {
				m.look.problem("%s is in the due index, but not in the table's schedule", key)
			}
		}
	}
	for on, key := range m.required {
		if len(m.dues[on]) == 0 && !m.look.hidden(key) { // a due record at another time was already reported
			m.look.problem("%s is due by the table's schedule, but not in the due index, so nothing runs it", key)
		}
	}
	for _, job := range m.jobs {
		if err := m.jobFiles(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// jobFiles reports a job whose table is gone, or whose files are missing.
func (m *maintained) jobFiles(ctx context.Context, job registry.Job) error {
	pointer, ok := m.look.pointers[job.Pointer]
	switch {
	case m.look.hidden(registry.PointerKey(job.Pointer)):
		return nil
	case !ok && m.look.config.Now().Sub(job.NotBefore) > jobGrace:
		m.look.problem("the job %s (%s) is on a table that is gone: moorage maintain job cancel %s",
			job.ID, job.Kind, job.ID)
	}
	warehouse, known := m.look.warehouses[pointer.value.Warehouse]
	if !ok || !known {
		return nil
	}
	files := job.Lists
	if job.Input != nil {
		files = append([]registry.JobFile{*job.Input}, files...)
	}
	for _, file := range files {
		place := m.look.config.Files.PlaceOf(warehouse)
		answers := m.look.storages.resultsAt(pointer.value.Warehouse, file.Location, place)
		_, err := answers.ask(ctx, func(ctx context.Context) error {
			return m.look.config.Files.StatIn(ctx, place, file.Location)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, storage.ErrNotFound):
			m.look.problem("the job %s (%s) of %s: its file %s is missing", job.ID, job.Kind, pointer, file.Location)
		case err != nil:
			m.look.problem("the job %s (%s) of %s: %s", job.ID, job.Kind, pointer, plain(err))
		}
	}
	return nil
}
