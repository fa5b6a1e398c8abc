// The only list of all components, one per line.

import { type AnyDeclaration, erased, registryOf } from './component.ts'
import { blackhole } from './sinks/blackhole.ts'
import { cloudMonitorLogs } from './sinks/cloud_monitor_logs.ts'
import { consoleSink } from './sinks/console.ts'
import { fileSink } from './sinks/file.ts'
import { http } from './sinks/http.ts'
import { logAggregator } from './sinks/log_aggregator.ts'
import { logsvcA } from './sinks/logsvc_a.ts'
import { logsvcAOld } from './sinks/logsvc_a_old.ts'
import { logsvcBLogs } from './sinks/logsvc_b_logs.ts'
import { messageBroker } from './sinks/message_broker.ts'
import { monitorALogs } from './sinks/monitor_a_logs.ts'
import { monitorAMetrics } from './sinks/monitor_a_metrics.ts'
import { monitorCLogs } from './sinks/monitor_c_logs.ts'
import { monitorCMetrics } from './sinks/monitor_c_metrics.ts'
import { observabilityD } from './sinks/observability_d.ts'
import { remoteWriteMetrics } from './sinks/remote_write_metrics.ts'
import { searchEngine } from './sinks/search_engine.ts'
import { siemUnstructured } from './sinks/siem_unstructured.ts'
import { tsdbMetrics } from './sinks/tsdb_metrics.ts'
import { amqp } from './sources/amqp.ts'
import { cloudQueue } from './sources/cloud_queue.ts'
import { demoLogs } from './sources/demo_logs.ts'
import { eventstoreMetrics } from './sources/eventstore_metrics.ts'
import { file } from './sources/file.ts'
import { internalLogs } from './sources/internal_logs.ts'
import { internalMetrics } from './sources/internal_metrics.ts'
import { orchestratorEvents } from './sources/orchestrator_events.ts'
import { orchestratorLogs } from './sources/orchestrator_logs.ts'
import { stdin } from './sources/stdin.ts'
import { webserverMetrics } from './sources/webserver_metrics.ts'
import { filter } from './transforms/filter.ts'
import { metricToLog } from './transforms/metric_to_log.ts'
import { remap } from './transforms/remap.ts'
import { tagCardinalityLimit } from './transforms/tag_cardinality_limit.ts'

export const components: readonly AnyDeclaration[] = [
  erased(amqp),
  erased(cloudQueue),
  erased(demoLogs),
  erased(eventstoreMetrics),
  erased(file),
  erased(internalLogs),
  erased(internalMetrics),
  erased(orchestratorEvents),
  erased(orchestratorLogs),
  erased(stdin),
  erased(webserverMetrics),
  erased(filter),
  erased(metricToLog),
  erased(remap),
  erased(tagCardinalityLimit),
  erased(blackhole),
  erased(cloudMonitorLogs),
  erased(consoleSink),
  erased(fileSink),
  erased(http),
  erased(logAggregator),
  erased(logsvcA),
  erased(logsvcAOld),
  erased(logsvcBLogs),
  erased(messageBroker),
  erased(monitorALogs),
  erased(monitorAMetrics),
  erased(monitorCLogs),
  erased(monitorCMetrics),
  erased(observabilityD),
  erased(remoteWriteMetrics),
  erased(searchEngine),
  erased(siemUnstructured),
  erased(tsdbMetrics),
]

export const registry = registryOf(components)

export const findComponent = registry.find
