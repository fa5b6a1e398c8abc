// Logging.

export { createLogger, type Logger, silentLogger } from '../telemetry/logger.ts'
