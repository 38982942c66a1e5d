"""The engine behind selective attention: packed, dense and routed; equal to `weitblick.context.definition`."""
