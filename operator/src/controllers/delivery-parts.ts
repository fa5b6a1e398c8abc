// The parts that bring bundles to agents and hear what became of them, with what they share.

import { type AgentControllerOptions, agentPart } from './agent.ts'
import type { OperatorPart } from './context.ts'
import { Delivery } from './delivery.ts'
import { type HeartbeatServerOptions, heartbeatPart } from './heartbeat.ts'
import { rolloutPart } from './rollout.ts'

export interface DeliveryOptions extends AgentControllerOptions, HeartbeatServerOptions {
  readonly heartbeatPeriodMs: number
}

export function deliveryParts(options: DeliveryOptions): OperatorPart[] {
  const delivery = new Delivery(options.heartbeatPeriodMs)
  // Agents trust what the server that they report to shows.
  const workloadInput: AgentControllerOptions['workloadInput'] = (agent) => {
    const ca = options.certificate?.current()?.ca
    return { ...(ca === undefined ? {} : { operatorAuthority: ca }), ...options.workloadInput?.(agent) }
  }
  return [heartbeatPart(delivery, options), agentPart(delivery, { ...options, workloadInput }), rolloutPart(delivery)]
}
