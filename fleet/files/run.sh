#!/bin/bash
# kimi
cd /opt/kimi
source venv/bin/activate
export HOME=/root
export HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 SGLANG_USE_CPU_ENGINE=1
#export NCCL_P2P_LEVEL=4
python -m sglang.launch_server --model-path /opt/kimi/model --served-model-name kimi-k2.5 \
  --host 0.0.0.0 --port 30000 --device cpu --attention-backend torch_native --disable-overlap-schedule \
  --mem-fraction-static 0.1 --max-total-tokens 2048 --sleep-on-idle --enable-metrics
