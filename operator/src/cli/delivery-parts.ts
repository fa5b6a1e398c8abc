// The parts that deliver bundles to agents and receive their reports, with their shared state.

import type { OperatorPart } from '../context.ts'
import { type AgentControllerOptions, agentPart } from '../controllers/agent.ts'
import { rolloutPart } from '../controllers/rollout.ts'
import { FleetState } from '../fleet/state.ts'
import { type HeartbeatServerOptions, heartbeatPart } from '../serving/heartbeat.ts'

export interface DeliveryPartsOptions extends AgentControllerOptions, HeartbeatServerOptions {
  readonly heartbeatPeriodMs: number
}

export function deliveryParts(options: DeliveryPartsOptions): OperatorPart[] {
  const fleet = new FleetState(options.heartbeatPeriodMs)
  // Agents trust the certificate of the server to which they report.
  const workloadInput: AgentControllerOptions['workloadInput'] = (agent) => {
    const ca = options.certificate?.current()?.ca
    return { ...(ca === undefined ? {} : { operatorAuthority: ca }), ...options.workloadInput?.(agent) }
  }
  return [heartbeatPart(fleet, options), agentPart(fleet, { ...options, workloadInput }), rolloutPart(fleet)]
}
